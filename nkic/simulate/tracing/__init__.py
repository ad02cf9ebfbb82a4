"""Records of runs, and replays that compute the time under changed conditions."""
