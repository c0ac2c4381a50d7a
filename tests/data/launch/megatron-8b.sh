#!/bin/bash
# Vendors' layout of 8B on 8 H100.
ARGS="--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32"
ARGS+=" --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm"
ARGS+=" --untie-embeddings-and-output-weights --disable-bias-linear --vocab-size 128256"
torchrun --nproc_per_node=8 pretrain_gpt.py $ARGS \
  --tensor-model-parallel-size=1 --pipeline-model-parallel-size=1 --context-parallel-size=2 \
  --micro-batch-size=1 --global-batch-size=128 --seq-length=8192 --bf16 --grad-reduce-in-bf16 --cross-entropy-loss-fusion \
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
