"""Containers whose memory on a card is limited, by real kubelet and containerd, on simulated cards."""
