#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8

export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=${TP:-1}
PP=2 # stages
MBS=4

GPT_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --seq-length 8192
    --max-position-embeddings 8192
    --vocab-size 128256
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
)
TRAINING_ARGS="
    --micro-batch-size $MBS
    --global-batch-size 128
    --bf16
    --use-distributed-optimizer
    --use-flash-attn
"
# --tensor-model-parallel-size 8 was slower
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py \
    ${GPT_ARGS[@]} ${TRAINING_ARGS} \
    --tensor-model-parallel-size $TP \
    --pipeline-model-parallel-size=${PP}
