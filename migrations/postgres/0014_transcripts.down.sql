DROP TABLE transcripts;
