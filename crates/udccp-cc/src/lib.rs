//! Window algorithms and round-trip estimators shared by DCCP CCIDs and the TCP model.
