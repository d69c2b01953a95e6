"""What notebooks show of Tensors, programs and graphs: HTML without scripts or style sheets, which takes the colours of the page around it."""
