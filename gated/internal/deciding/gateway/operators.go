package gateway

import (
	"arizuko/gated/internal/codes"
	"arizuko/gated/internal/deciding/decide"
)

// leaks reports whether a row holds the open code, other than as an /operator, and makes it one that does.
func (f *reader) leaks(r *decide.Row) bool {
	if f.code == nil {
		return false
	}
	if text, is := r.OperatorCommand(); is && codes.Hash(text) == f.code.Hash {
		return false
	}
	without, written := codes.Cut(r.Content, f.code.Hash)
	if _, around := codes.Cut(r.Quote+"\n"+r.SenderName, f.code.Hash); !written && !around {
		return false
	}
	r.Kind, r.Command, r.Code = decide.KindLeak, nil, &decide.Code{Without: without}
	return true
}

// codeOf returns the facts about the code of an /operator, nil for other rows.
func (f *reader) codeOf(r *decide.Row) *decide.Code {
	text, is := r.OperatorCommand()
	if !is {
		return nil
	}
	code := &decide.Code{Hash: codes.Hash(text), Open: codes.Counts(f.code, r.Sender, f.now())}
	code.Right = code.Open && code.Hash == f.code.Hash // of hashes: the time of a comparison tells nothing
	return code
}
