# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""The calls of kubeflow.training.TrainingClient that people use, in their usual order.

KUBECONFIG names an embedded plane or a real cluster. HOLDFAST_TEST_IMAGE names an image with a shell, which a real
cluster needs.
"""

import os
import unittest

from kubernetes import config
from kubernetes.client import (V1Container, V1ObjectMeta, V1PodSpec, V1PodTemplateSpec)
from kubeflow.training import (KubeflowOrgV1PyTorchJob, KubeflowOrgV1PyTorchJobSpec,
                               KubeflowOrgV1ReplicaSpec, KubeflowOrgV1RunPolicy, TrainingClient)

NAMESPACE = "default"
IMAGE = os.environ.get("HOLDFAST_TEST_IMAGE", "none")


def replica(command, replicas=1):
    container = V1Container(name="pytorch", image=IMAGE, command=["sh", "-c", command])
    return KubeflowOrgV1ReplicaSpec(
        replicas=replicas, restart_policy="Never",
        template=V1PodTemplateSpec(spec=V1PodSpec(containers=[container])))


def job(name, command, suspend=None):
    return KubeflowOrgV1PyTorchJob(
        api_version="kubeflow.org/v1", kind="PyTorchJob",
        metadata=V1ObjectMeta(name=name, namespace=NAMESPACE),
        spec=KubeflowOrgV1PyTorchJobSpec(
            run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None", suspend=suspend),
            pytorch_replica_specs={"Master": replica(command), "Worker": replica(command)}))


class Sdk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config.load_kube_config(os.environ["KUBECONFIG"])
        cls.client = TrainingClient(config_file=os.environ["KUBECONFIG"], namespace=NAMESPACE,
                                    job_kind="PyTorchJob")

    def tearDown(self):
        for left in self.client.list_jobs():
            self.client.delete_job(left.metadata.name)

    def resume(self, name):
        """Update the job, and try again if the operator has written it in between: an update must be of the newest version."""
        for last in (False,) * 4 + (True,):
            change = self.client.get_job(name)
            change.spec.run_policy.suspend = False
            try:
                return self.client.update_job(change, name)
            except RuntimeError as e:
                if last or "Conflict" not in str(e):
                    raise

    def test_a_job_from_create_to_delete(self):
        self.client.create_job(job("whole", "echo rank $RANK of $WORLD_SIZE"))
        self.client.wait_for_job_conditions("whole", wait_timeout=90, polling_interval=1)
        self.assertTrue(self.client.is_job_succeeded("whole"))
        self.assertFalse(self.client.is_job_running("whole"))
        self.assertFalse(self.client.is_job_failed("whole"))
        got = self.client.get_job("whole")
        self.assertEqual(got.status.replica_statuses["Master"].succeeded, 1)
        self.assertEqual(["whole"], [j.metadata.name for j in self.client.list_jobs()])
        conditions = [c.type for c in self.client.get_job_conditions("whole")]
        self.assertIn("Created", conditions)
        self.assertEqual("Succeeded", conditions[-1])

        pods = sorted(p.metadata.name for p in self.client.get_job_pods("whole"))
        self.assertEqual(["whole-master-0", "whole-worker-0"], pods)
        self.assertEqual(["whole-master-0"], self.client.get_job_pod_names("whole", is_master=True))
        logs, _ = self.client.get_job_logs("whole", is_master=True)
        self.assertIn("rank 0 of 2", logs["whole-master-0"])

        self.client.delete_job("whole")
        with self.assertRaises(RuntimeError):
            self.client.get_job("whole")

    def test_logs_are_followed_to_their_end(self):
        self.client.create_job(job("follow", "echo step 1; sleep 1; echo step 2; sleep 1"))
        self.client.wait_for_job_conditions("follow", expected_conditions={"Running", "Succeeded"},
                                            wait_timeout=90, polling_interval=1)
        self.client.get_job_logs("follow", is_master=True, follow=True)
        self.client.wait_for_job_conditions("follow", wait_timeout=90, polling_interval=1)

    def test_a_job_is_updated(self):
        self.client.create_job(job("update", "true", suspend=True))
        self.assertTrue(self.client.get_job("update").spec.run_policy.suspend)
        self.resume("update")
        self.assertFalse(self.client.get_job("update").spec.run_policy.suspend)
        self.client.wait_for_job_conditions("update", wait_timeout=90, polling_interval=1)

    def test_a_job_that_fails_says_so(self):
        self.client.create_job(job("fails", "exit 3"))
        self.client.wait_for_job_conditions("fails", expected_conditions={"Failed"},
                                            wait_timeout=90, polling_interval=1)
        self.assertTrue(self.client.is_job_failed("fails"))

    def test_a_second_job_of_one_name_is_refused(self):
        self.client.create_job(job("twice", "true", suspend=True))
        with self.assertRaises(RuntimeError):
            self.client.create_job(job("twice", "true"))

    def test_an_invalid_job_is_refused(self):
        bad = job("bad", "true")
        bad.spec.pytorch_replica_specs["Master"].replicas = 2
        with self.assertRaises(RuntimeError):
            self.client.create_job(bad)


if __name__ == "__main__":
    unittest.main(verbosity=1)
