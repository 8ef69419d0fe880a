# TODO(trainjob): TJ716 KubeflowOrgV1TFJob of the v1 SDK is still used; kubeflow 0.5 has nothing for
#   it; migrate the places that use it; until then install kubeflow-training beside it
from kubeflow.training import KubeflowOrgV1TFJob
from kubeflow.trainer import CustomTrainer, TrainerClient
from kubeflow.trainer.options import Name

# TODO(trainjob): TJ708 this client was for jobs of the kind TFJob; a TrainerClient has none; no
#   runtime replaces it: write a TrainingRuntime whose pods build TF_CONFIG
tf = TrainerClient()
both = TrainerClient()


def train():
    print("train")


# TODO(trainjob): TJ708 create_job is for a job of the kind TFJob: not rewritten; no runtime
#   replaces it: write a TrainingRuntime whose pods build TF_CONFIG
tf.create_job(name="tf-mnist", train_func=train, num_workers=2, num_ps_replicas=1)
# TODO(trainjob): TJ708 create_job is for a job of the kind TFJob: not rewritten; no runtime
#   replaces it: write a TrainingRuntime whose pods build TF_CONFIG
both.create_job(name="tf-two", train_func=train, job_kind="TFJob", num_workers=1)
# TODO(trainjob): TJ708 create_job gets a TFJob: not rewritten; no runtime replaces it: write a
#   TrainingRuntime whose pods build TF_CONFIG
both.create_job(job=KubeflowOrgV1TFJob(kind="TFJob"))
both.train(
    runtime="torch-distributed",
    trainer=CustomTrainer(func=train, num_nodes=1, resources_per_node={"gpu": 1}),
    options=[Name(name="torch")],
)
# TODO(trainjob): TJ708 get_job_logs is for a job of the kind TFJob: not rewritten
both.get_job_logs("tf-two", job_kind="TFJob", follow=True)
