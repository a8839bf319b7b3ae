package outbound

import (
	"slices"

	"arizuko/pkg/render"
	"arizuko/teled/internal/telegramapi"
)

// shiftEntities moves the entities of a text by a number of UTF-16 units.
func shiftEntities(p telegramapi.Params, by int) {
	for _, key := range []string{"entities", "caption_entities"} {
		entities, ok := p[key].([]render.Entity)
		if !ok {
			continue
		}
		entities = slices.Clone(entities)
		for i := range entities {
			entities[i].Offset += by
		}
		p[key] = entities
	}
}
