from kubeflow.training import KubeflowOrgV1TFJob, TrainingClient, constants

tf = TrainingClient(job_kind=constants.TFJOB_KIND)
both = TrainingClient()


def train():
    print("train")


tf.create_job(name="tf-mnist", train_func=train, num_workers=2, num_ps_replicas=1)
both.create_job(name="tf-two", train_func=train, job_kind="TFJob", num_workers=1)
both.create_job(job=KubeflowOrgV1TFJob(kind="TFJob"))
both.create_job(name="torch", train_func=train, job_kind="PyTorchJob", resources_per_worker={"gpu": 1})
both.get_job_logs("tf-two", job_kind="TFJob", follow=True)
