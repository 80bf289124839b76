"""Programs that show TCP, UDP and DCCP on one link, with a graph while they run.

``python -m udccp.examples.server`` receives, ``client`` sends, ``flood`` sends UDP faster than the
link. They are the programs of a study of 2011 (van Tonder and Esterhuizen, *Datagram Congestion
Control*), made to be read.
"""
