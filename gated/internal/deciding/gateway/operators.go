package gateway

import (
	"context"

	"arizuko/gated/internal/codes"
	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/store"
)

// operatorCode reads what the code of an /operator is worth, nil for other rows.
func (f *reader) operatorCode(ctx context.Context, r *decide.Row) (*decide.Code, error) {
	text, is := r.OperatorCommand()
	if !is {
		return nil, nil
	}
	stored, err := f.st.OperatorCode(ctx)
	code := &decide.Code{Hash: codes.Hash(text), Open: codes.Counts(stored, r.Sender, f.now())}
	code.Right = code.Open && code.Hash == stored.Hash // of hashes: the time of a comparison tells nothing
	return code, err
}

// applyOperator stores an effect of /operator.
func (p *plan) applyOperator(tx *store.Tx, e decide.Effect) error {
	switch e := e.(type) {
	case decide.AddOperator:
		p.at = e.Row
		return tx.AddOperator(p.row(e.Row).Sender, e.Hash, p.batch.Now)
	case decide.NoteWrongCode:
		p.at = e.Row
		return tx.NoteWrongOperatorCode(p.row(e.Row).Sender, codes.MaxTries)
	case decide.EndCode:
		p.at = e.Row
		return tx.EndOperatorCode()
	}
	return p.applyParked(tx, e) // or what is acted on after the commit
}
