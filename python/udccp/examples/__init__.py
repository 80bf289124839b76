"""Programs that compare TCP, UDP and DCCP on one link, with a live graph.

``python -m udccp.examples.server`` receives, ``client`` sends, ``flood`` sends UDP faster than the
link. They follow the programs of a study of 2011 (van Tonder and Esterhuizen, *Datagram Congestion
Control*), and are written to be read.
"""
