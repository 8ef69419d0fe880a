import transformers
from peft import LoraConfig
from kubeflow.storage_initializer.hugging_face import (
    HuggingFaceDatasetParams,
    HuggingFaceModelParams,
    HuggingFaceTrainerParams,
)
from kubeflow.training import TrainingClient

client = TrainingClient(namespace="llm")
client.train(
    name="tune-bert",
    num_workers=2,
    num_procs_per_worker=1,
    resources_per_worker={"gpu": 1, "cpu": 5, "memory": "10G"},
    model_provider_parameters=HuggingFaceModelParams(
        model_uri="hf://google-bert/bert-base-cased",
        transformer_type=transformers.AutoModelForSequenceClassification,
    ),
    dataset_provider_parameters=HuggingFaceDatasetParams(repo_id="yelp_review_full", split="train[:3000]"),
    trainer_parameters=HuggingFaceTrainerParams(
        training_parameters=transformers.TrainingArguments(output_dir="test_trainer"),
        lora_config=LoraConfig(r=8),
    ),
)
client.get_job_logs("tune-bert", follow=True)
