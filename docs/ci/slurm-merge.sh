#!/usr/bin/env bash
# Merges the reports of docs/ci/slurm-array.sh, which says how it is submitted. The job fails where a prompt does not match or a shard
# is missing.
#SBATCH --job-name=tracediff-merge
#SBATCH --time=00:10:00
#SBATCH --mem=16G
#SBATCH --output=tracediff-merge-%j.log
set -euo pipefail

tracediff merge "${REPORTS:?names the folder with the reports of the shards}"/*.json --report junit=tracediff.xml --report json=tracediff.json
