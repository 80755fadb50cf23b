#!/usr/bin/env bash
# Compares the prompts of tracediff.toml as a Slurm array, a shard a task, and merges the reports when all tasks have ended:
#
#     job=$(sbatch --parsable docs/ci/slurm-array.sh)
#     sbatch --dependency="afterany:$job" --export="ALL,REPORTS=shards-$job" docs/ci/slurm-merge.sh
#
# Submit it in the folder of tracediff.toml, on a disk that all nodes see. The array has to begin with 0, and has as many shards as it
# has tasks. One task is run again by: SHARDS=4 REPORTS=shards-JOB sbatch --array=2 docs/ci/slurm-array.sh
#SBATCH --job-name=tracediff
#SBATCH --array=0-3
#SBATCH --cpus-per-task=4
#SBATCH --mem=16G
#SBATCH --time=01:00:00
#SBATCH --output=tracediff-%A-%a.log
set -euo pipefail

index=${SLURM_ARRAY_TASK_ID:?is set in a task of an array}
shards=${SHARDS:-$SLURM_ARRAY_TASK_COUNT}
reports=${REPORTS:-shards-$SLURM_ARRAY_JOB_ID} # a folder of its own for each array: no report of an earlier one is merged
mkdir -p "$reports"
rm -f "$reports/$index.json"

# Traces go to the node's own disk, with a copy of the references that are there already.
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
if [ -d .tracediff/references ]; then
	cp -R .tracediff/references "$traces/"
fi

# A mismatch is for the merged report to say. A task without a report has failed here.
tracediff gate --shard "$index/$shards" --dir "$traces" --report json="$reports/$index.json" || [ -s "$reports/$index.json" ]
