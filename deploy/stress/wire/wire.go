// Package wire is what the world of the stress program and its adapter say to each other, over
// HTTP. GET /updates?after=N answers with what happened behind N, which is confirmed with that,
// or after a while with nothing; POST /send takes one part of an outbound row.
package wire

// Update is something that somebody did.
type Update struct {
	ID     int64  `json:"id"` // ascending
	Chat   string `json:"chat"`
	Thread string `json:"thread"`
	Sender string `json:"sender"`
	Verb   string `json:"verb"`
	Target string `json:"target"` // the platform id of what an edit, a deletion or a reaction is about
	Text   string `json:"text"`
}

// Send is one part of a row. That it names its row is what real platforms lack: it shows who
// sends twice.
type Send struct {
	Row    int64  `json:"row"`
	Part   int    `json:"part"`
	Chat   string `json:"chat"`
	Thread string `json:"thread"`
	Text   string `json:"text"`
	Marked bool   `json:"marked"` // it says that it may be there twice
}

// SentAs is the id that a part was given.
type SentAs struct {
	ID string `json:"id"`
}
