package main

import (
	"cmp"

	"arizuko/pkg/agentproto"
)

// showModels says which models can be chosen, and which one is. A model whose id is too long for an event is left out.
func (r *run) showModels(s *selection) error {
	models := &agentproto.Models{}
	for _, c := range s.choices {
		if c.ID == "" || len(c.ID) > agentproto.MaxModelID || len(models.Models) == agentproto.MaxModels {
			continue
		}
		models.Models = append(models.Models, agentproto.Model{ID: c.ID, Name: cmp.Or(c.Name, c.ID)})
	}
	if len(models.Models) == 0 {
		return nil
	}
	if len(s.current) <= agentproto.MaxModelID {
		models.Current = s.current
	}
	return r.running.Emit(agentproto.Event{Models: models})
}
