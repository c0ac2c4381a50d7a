#!/bin/bash
# Thirty layers on four stages: two of them would be missing.
torchrun --nproc_per_node 4 --nnodes 1 pretrain_gpt.py \
  --num-layers 30 \
  --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --vocab-size 50304 \
  --tensor-model-parallel-size 1 \
  --pipeline-model-parallel-size 4 \
  --micro-batch-size 1 --global-batch-size 64 --bf16
