package agents

import (
	"slices"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/store"
)

// maxOffers is how often one run may change the models that it offers. Further changes are ignored.
const maxOffers = 20

// offers are the models that the agent of a run offers. The run's goroutine owns them.
type offers struct {
	*runInfo
	last    agentproto.Models
	changes int
}

// store stores the models that the agent offers, unless they are as before.
func (o *offers) store(m agentproto.Models) {
	m.Current, m.Models = o.setup.redact(m.Current), slices.Clone(m.Models)
	for i := range m.Models {
		model := &m.Models[i]
		model.ID, model.Name, model.Description = o.setup.redact(model.ID), o.setup.redact(model.Name),
			o.setup.redact(model.Description)
	}
	if o.changes == maxOffers || o.changes > 0 && o.last.Equal(m) {
		return
	}
	o.changes++
	o.last = m
	err := o.env.st.Write(o.env.ctx, func(tx *store.Tx) error {
		return rows.PutAgentModels(tx, o.row.Folder, o.row.Agent, m, o.env.now())
	})
	if err != nil && o.env.ctx.Err() == nil { // the next run says it again
		o.env.log.Warn("models of an agent not stored", "run", o.row.ID, "folder", o.row.Folder, "err", err)
	}
}
