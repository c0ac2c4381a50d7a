#!/bin/bash
# GPT-3 175B on 16 nodes, interleaved.
GPU=8
torchrun --nproc_per_node ${GPU} --nnodes 16 --node_rank $RANK --master_addr $MASTER_ADDR pretrain_gpt.py \
  --num-layers 96 --hidden-size 12288 --num-attention-heads 96 \
  --seq-length 2048 --max-position-embeddings 2048 \
  --tensor-model-parallel-size 4 \
  --pipeline-model-parallel-size 8 \
  --num-virtual-stages-per-pipeline-rank 6 \
  --sequence-parallel --use-distributed-optimizer \
  --overlap-grad-reduce --overlap-param-gather \
  --micro-batch-size 1 --global-batch-size 256 \
  --bf16 --grad-reduce-in-bf16 --vocab-size 51200 --attention-backend fused
