package agents

import (
	"slices"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/store"
)

// maxOffers is how often one run may change the models that it offers. Further changes are ignored.
const maxOffers = 20

// offers stores the models that the agent offers.
func (r *run) offers(m agentproto.Models) {
	m.Current, m.Models = r.setup.redact(m.Current), slices.Clone(m.Models)
	for i := range m.Models {
		model := &m.Models[i]
		model.ID, model.Name, model.Description = r.setup.redact(model.ID), r.setup.redact(model.Name), r.setup.redact(model.Description)
	}
	if r.offered == maxOffers || r.offered > 0 && r.models.Equal(m) {
		return
	}
	r.offered++
	r.models = m
	err := r.m.st.Write(r.m.ctx, func(tx *store.Tx) error {
		return tx.PutAgentModels(r.row.Folder, r.row.Agent, m, r.m.now())
	})
	if err != nil && r.m.ctx.Err() == nil { // the next run says it again
		r.m.log.Warn("models of an agent not stored", "run", r.row.ID, "folder", r.row.Folder, "err", err)
	}
}
