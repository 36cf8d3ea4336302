"""Coding agents as installed from npm: the skills that each of them shows its model, measured.

`python -m benchmarks.npm_hosts` describes itself with `--help`. No account, key or network is needed to run an agent:
its model is a server on loopback that answers every request and keeps it.
"""
