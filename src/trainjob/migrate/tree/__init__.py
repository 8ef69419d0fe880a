"""Whole trees: kustomize bases and overlays, Helm charts, repositories that Argo CD or Flux apply."""
