"""What a hook author needs: the guest ABI, the SDKs and the builder."""
