#!/bin/bash
ZERO_STAGE=1
deepspeed --num_nodes 4 --num_gpus 8 pretrain_gpt.py \
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 \
  --seq-length 4096 --max-position-embeddings 4096 \
  --micro-batch-size 1 --global-batch-size 128 \
  --swiglu --normalization rmsnorm --use-rotary-position-embeddings --disable-bias-linear \
  --untie-embeddings-and-output-weights --use-flash-attn-v2 --bf16 \
  --deepspeed --deepspeed_config ds.json --zero-stage=${ZERO_STAGE} \
  --deepspeed-activation-checkpointing --checkpoint-activations
