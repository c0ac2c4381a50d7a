#!/bin/bash
#SBATCH --job-name=llama70b
#SBATCH --nodes=8
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=1
# Vendors' layout of 70B on 64 H100: every stage of five chunks.
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-8}
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
TP=${TP:-4}
PP=${PP:-4}
CP=2
MBS=1
GBS=256
SEQ=8192

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --rdzv_endpoint "$MASTER_ADDR:29500"
)
MODEL_ARGS=(
    --use-mcore-models
    --num-layers 80
    --hidden-size 8192
    --ffn-hidden-size 28672
    --num-attention-heads 64
    --group-query-attention
    --num-query-groups 8
    --kv-channels 128
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --position-embedding-type rope
    --rotary-base 500000
    --seq-length $SEQ
    --max-position-embeddings $SEQ
    --vocab-size 128256
    --make-vocab-size-divisible-by 128
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size ${TP}
    --pipeline-model-parallel-size ${PP}
    --context-parallel-size ${CP}
    --num-layers-per-virtual-pipeline-stage 4
    --sequence-parallel
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
)
TRAINING_ARGS=(
    --micro-batch-size ${MBS}
    --global-batch-size ${GBS}
    --bf16
    --grad-reduce-in-bf16
    --lr 1.5e-4
    --clip-grad 1.0
    --transformer-impl transformer_engine
    --hidden-dropout 0.0
    --attention-dropout 0.0
)
DATA_ARGS="--data-path ${DATA:-/data/corpus_text_document} --tokenizer-type HuggingFaceTokenizer"

srun torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py \
    "${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}" \
    "${TRAINING_ARGS[@]}" $DATA_ARGS 2>&1 | tee run.log
