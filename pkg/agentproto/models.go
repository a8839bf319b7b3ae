package agentproto

import (
	"fmt"
	"slices"
)

// Models are the models that an agent offers to the group that it works for. It says so before or with its first turn,
// and again when they change; each event replaces the one before. Operators choose one of them, which the next run gets
// as [Start.Model].
type Models struct {
	Current string  `json:"current,omitempty"` // the id of the one that it uses, "" if it does not know
	Models  []Model `json:"models"`
}

// Model is one of [Models].
type Model struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"` // for users; "" means that they see the id
	Description string `json:"description,omitempty"`
}

// Equal reports whether both say the same.
func (m Models) Equal(other Models) bool {
	return m.Current == other.Current && slices.Equal(m.Models, other.Models)
}

// normalize makes every text one line, and leaves out duplicates.
func (m *Models) normalize() error {
	if m.Current = title(m.Current); len(m.Current) > MaxModelID {
		return fmt.Errorf("id of a model must have 1 to %d bytes", MaxModelID)
	}
	known := make([]Model, 0, min(len(m.Models), MaxModels))
	for _, model := range m.Models {
		id := title(model.ID)
		if id == "" || len(id) > MaxModelID {
			return fmt.Errorf("id of a model must have 1 to %d bytes", MaxModelID)
		}
		if slices.ContainsFunc(known, func(k Model) bool { return k.ID == id }) {
			continue
		}
		if len(known) == MaxModels {
			break
		}
		known = append(known, Model{ID: id, Name: title(model.Name), Description: title(model.Description)})
	}
	m.Models = known
	return nil
}
