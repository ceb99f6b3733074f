#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""alerts_test.py FOLDER: each alert of deploy/alerts.yaml fires when it should and is silent when it should be.

promtool plays the series of CASES to the rules. FOLDER keeps the downloaded Prometheus. Exit code 77: promtool cannot be
had here.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools" / "lib"))
sys.dont_write_bytecode = True
import plane
import yaml_subset

ALERTS = TOP / "deploy" / "alerts.yaml"
KEPT = os.path.abspath(sys.argv[1])
JOB = 'namespace="team",job="llm",kind="PyTorchJob"'
ONE_JOB = {"namespace": "team", "job": "llm", "kind": "PyTorchJob", "status": "true"}
LEADER = 'leader_election_master_status{name="%s"}'
OURS, OTHER = "1ca428e5.training-operator.kubeflow.org", "other-operator"
BUCKET = 'holdfast_recovery_duration_seconds_bucket{stage="%s",cause="infrastructure",le="%s"}'
REGISTERED = 'kubelet_device_plugin_registration_total{instance="n1:10250",resource_name="%s"}'
ERRORS = 'controller_runtime_reconcile_errors_total{controller="%s"}'

# Alert: [({series: values, one a minute}, minute, [(labels, summary)] of what fires then)].
CASES = {
    "HoldfastJobNotTraining": [
        ({f'holdfast_job_status_condition{{{JOB},condition="Restarting",status="true"}}': "1x20"}, 16,
         [({**ONE_JOB, "condition": "Restarting"}, "PyTorchJob team/llm has been restarting for 15 minutes.")]),
        ({f'holdfast_job_status_condition{{{JOB},condition="Restarting",status="true"}}': "1x10 0x1 1x9"}, 16, []),
        ({f'holdfast_job_status_condition{{{JOB},condition="Suspended",status="true"}}': "1x20"}, 16, [])],
    "HoldfastJobHeld": [
        ({f'holdfast_job_status_condition{{{JOB},condition="holdfast.dev/Held",status="true"}}': "1x10"}, 6,
         [({**ONE_JOB, "condition": "holdfast.dev/Held"}, "Holdfast does nothing for PyTorchJob team/llm.")]),
        ({f'holdfast_job_status_condition{{{JOB},condition="holdfast.dev/Held",status="true"}}': "1x10"}, 4, [])],
    "HoldfastManyRestartsByTheCluster": [
        ({'holdfast_job_restarts_total{namespace="team",cause="device",scope="Job"}': "0+1x60"}, 60,
         [({"namespace": "team", "cause": "device"}, "Jobs in team were restarted 60 times in an hour (device).")]),
        ({'holdfast_job_restarts_total{namespace="team",cause="application",scope="Job"}': "0+1x60"}, 60, [])],
    "HoldfastRecoverySlow": [
        ({BUCKET % ("total", "600"): "0+1x120", BUCKET % ("total", "1800"): "0+2x120", BUCKET % ("total", "+Inf"): "0+2x120"},
         100, [({"cause": "infrastructure"}, "One in ten recoveries (infrastructure) takes more than ten minutes.")]),
        ({BUCKET % ("total", "600"): "0+2x120", BUCKET % ("total", "1800"): "0+2x120", BUCKET % ("total", "+Inf"): "0+2x120"},
         100, []),
        ({BUCKET % ("decide", "600"): "0x120", BUCKET % ("decide", "1800"): "0+2x120", BUCKET % ("decide", "+Inf"): "0+2x120"},
         100, [])],
    "HoldfastNodeLossGuard": [
        ({'holdfast_node_loss_guard{reason="FullDisruption"}': "2x10"}, 6, [(
            {"reason": "FullDisruption"},
            "A storm: too many nodes of a zone are lost at once, so Holdfast deletes none of their pods by force.")]),
        ({'holdfast_node_loss_guard{reason="FullDisruption"}': "0x10"}, 6, [])],
    "HoldfastBreakerTripped": [
        ({'holdfast_breaker_tripped{policy="gpus"}': "0 1"}, 1,
         [({"policy": "gpus"}, "HealthPolicy gpus does nothing until a person closes its breaker.")]),
        ({'holdfast_breaker_tripped{policy="gpus"}': "1 0"}, 1, [])],
    "HoldfastAgentsSilent": [
        ({'holdfast_health_nodes{policy="gpus",what="silent"}': "3x20"}, 16,
         [({"policy": "gpus"}, "3 nodes of HealthPolicy gpus have no agent that reports.")]),
        ({'holdfast_health_nodes{policy="gpus",what="unhealthy"}': "3x20"}, 16, [])],
    "HoldfastDevicePluginRestarts": [
        # A series that begins counts as no increase.
        ({REGISTERED % "nvidia.com/gpu": "1x20 3x20 5x20"}, 60, [
            ({"instance": "n1:10250", "resource_name": "nvidia.com/gpu"},
             "The device plugin of nvidia.com/gpu registered 4 times in an hour with the kubelet of n1:10250.")]),
        ({REGISTERED % "nvidia.com/gpu": "1x20 3x40"}, 60, []),
        ({REGISTERED % "example.com/nic": "0+1x60"}, 60, [])],
    "HoldfastNoLeader": [
        ({LEADER % OURS: "0x5"}, 4,
         [({}, "No Holdfast operator acts: jobs keep running, but nothing starts or restarts.")]),
        # The leader of another operator is not ours.
        ({LEADER % OTHER: "1x5"}, 4,
         [({}, "No Holdfast operator acts: jobs keep running, but nothing starts or restarts.")]),
        ({LEADER % OURS: "1x5"}, 4, [])],
    "HoldfastReconcileErrors": [
        ({ERRORS % "mpijob-controller": "0+60x40"}, 30,
         [({"controller": "mpijob-controller"}, "Passes of mpijob-controller fail again and again.")]),
        ({ERRORS % "certificate": "0+60x40"}, 30, []),
        ({ERRORS % "mpijob-controller": "0+6x40"}, 30, [])],
    "HoldfastConfigRejected": [
        ({"holdfast_config_rejected": "1x10"}, 6, [({}, "The config file of the Holdfast operator is invalid.")]),
        ({"holdfast_config_rejected": "1x3 0x7"}, 6, [])],
    "HoldfastMetricsIncomplete": [
        ({"holdfast_metrics_dropped_series_total": "0x5 0+3x55"}, 60,
         [({}, "The Holdfast operator leaves series of jobs out of its metrics.")]),
        ({"holdfast_metrics_dropped_series_total": "7x60"}, 60, [])],
    "HoldfastDetectorBlind": [
        ({'holdfast_agent_detector_age_seconds{detector="xid",instance="n1:7445"}': "0+60x20"}, 16,
         [({"detector": "xid", "instance": "n1:7445"}, "Detector xid of n1:7445 has seen nothing for 15 minutes.")]),
        # A job that reported has ended.
        ({'holdfast_agent_detector_age_seconds{detector="straggler",instance="n1:7445"}': "0+60x20"}, 16, []),
        ({'holdfast_agent_detector_age_seconds{detector="xid",instance="n1:7445"}': "5x20"}, 16, [])],
    "HoldfastJournalFailing": [
        ({'holdfast_agent_journal_failing{instance="n1:7445"}': "1x20"}, 11,
         [({"instance": "n1:7445"}, "The agent of n1:7445 cannot write its journal.")]),
        ({'holdfast_agent_journal_failing{instance="n1:7445"}': "1x20"}, 9, [])],
}


def alerts():
    """{name: the rule} of the file."""
    with open(ALERTS, encoding="utf-8") as f:
        groups = yaml_subset.parse(f.read())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def expected(rule, labels, summary):
    def filled(text):
        return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda m: labels[m[1]], text)
    annotations = {name: filled(text) for name, text in rule["annotations"].items()}
    return {"exp_labels": {**rule["labels"], **labels}, "exp_annotations": {**annotations, "summary": summary}}


def played(name, series, minute, firing):
    """A test of promtool; JSON is YAML."""
    return {"interval": "1m",
            "input_series": [{"series": s, "values": values} for s, values in series.items()],
            "alert_rule_test": [{"eval_time": f"{minute}m", "alertname": name,
                                 "exp_alerts": [expected(alerts()[name], *one) for one in firing]}]}


def promtool(*words):
    return subprocess.run([os.path.join(PROGRAMS, "promtool"), *words], capture_output=True, text=True, check=False)


class AlertsTest(unittest.TestCase):
    def test_each_alert_has_a_case_that_fires_and_one_that_is_silent(self):
        self.assertEqual(sorted(CASES), sorted(alerts()))
        for name, cases in CASES.items():
            self.assertEqual({bool(firing) for _, _, firing in cases}, {True, False}, name)

    def test_the_rules_are_valid(self):
        made = promtool("check", "rules", str(ALERTS))
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        self.assertIn(f"{len(CASES)} rules found", made.stdout)

    def test_the_cases(self):
        tests = [played(name, *case) for name, cases in CASES.items() for case in cases]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cases.yaml")
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}, f)
            made = promtool("test", "rules", path)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)


if __name__ == "__main__":
    PROGRAMS = plane.find_prometheus(KEPT)
    unittest.main(argv=sys.argv[:1])
