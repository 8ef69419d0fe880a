"""Manifests whose every text tries to be HTML, script, Markdown or a terminal escape."""

from __future__ import annotations

FILE = 'jobs/"><script>alert(6)</script>.yaml'
# Migrated: none of it looks like a placeholder that nobody filled in.
TEXT = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: demo
  annotations:
    other.example.com/note: 'ns"><img src=x onerror=alert(1)>'
    attack.example.com/note: '</style></script><script src=//evil.example.com/x.js></script>'
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          schedulerName: '</td></table><h1 id=owned>owned</h1> | `x` @everyone [a](https://evil.example.com)'
          containers:
          - name: pytorch
            image: "registry.example.com/x:1'><svg/onload=alert(4)>"
            command: [python, -c, "print('&amp;<b x=y>')", '<!--', '</details></details>']
            env:
            - {name: A, value: "\\u202e gnp.<iframe src=javascript:alert(5)>"}
"""
# Refused, with the attack in the message.
REFUSED = TEXT.replace("name: demo", "name: '<script>'")
