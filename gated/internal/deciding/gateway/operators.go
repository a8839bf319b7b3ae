package gateway

import (
	"context"

	"arizuko/gated/internal/codes"
	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/store"
)

// operatorCode reads what the code of an /operator is worth, or that another text holds the code that is open; nil for
// other rows.
func (f *reader) operatorCode(ctx context.Context, r *decide.Row) (*decide.Code, error) {
	text, is := r.OperatorCommand()
	stored, err := rows.FindOperatorCode(ctx, f.st.Reader)
	if err != nil || stored == nil && !is {
		return nil, err
	}
	if stored != nil && (!is || codes.Hash(text) != stored.Hash) {
		without, written := codes.Cut(r.Content, stored.Hash)
		_, around := codes.Cut(r.Quote+"\n"+r.SenderName, stored.Hash)
		if written || around {
			return &decide.Code{Written: true, Without: without}, nil
		}
	}
	if !is {
		return nil, nil
	}
	code := &decide.Code{Hash: codes.Hash(text), Open: codes.Counts(stored, r.Sender, f.now())}
	code.Right = code.Open && code.Hash == stored.Hash // of hashes: the time of a comparison tells nothing
	return code, err
}

// applyOperator stores an effect of /operator.
func (p *plan) applyOperator(tx *store.Tx, e decide.Effect) error {
	switch e := e.(type) {
	case decide.AddOperator:
		p.at = e.Row
		return rows.AddOperator(tx, p.row(e.Row).Sender, e.Hash, p.batch.Now)
	case decide.NoteWrongCode:
		p.at = e.Row
		return rows.NoteWrongOperatorCode(tx, p.row(e.Row).Sender, codes.MaxTries)
	case decide.EndCode:
		p.at = e.Row
		return rows.EndOperatorCode(tx)
	}
	return p.applyParked(tx, e) // or what is acted on after the commit
}
