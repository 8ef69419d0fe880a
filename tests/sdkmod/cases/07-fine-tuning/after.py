import transformers
from peft import LoraConfig
from kubeflow.storage_initializer.hugging_face import (
    HuggingFaceDatasetParams,
    HuggingFaceModelParams,
    HuggingFaceTrainerParams,
)
from kubeflow.trainer import KubernetesBackendConfig, TrainerClient

client = TrainerClient(backend_config=KubernetesBackendConfig(namespace="llm"))
# TODO(trainjob): TJ710 train() for Hugging Face models has no counterpart; it ran 2 pods
#   (num_workers counts the Master); write the fine-tuning as a function for CustomTrainer(func,
#   num_nodes=2), or use BuiltinTrainer(config=TorchTuneConfig(...)) with
#   Initializer(model=HuggingFaceModelInitializer(...), dataset=HuggingFaceDatasetInitializer(...))
#   on a torchtune runtime
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
for line in client.get_job_logs(name="tune-bert", step="node-0", follow=True):
    print(line)
