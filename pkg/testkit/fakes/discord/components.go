package discord

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// The documented limits of components.
const (
	maxRows      = 5
	maxInRow     = 5
	maxCustomID  = 100
	maxLabel     = 80
	actionRow    = 1
	buttonType   = 2
	stringSelect = 3
	linkButton   = 5
	premium      = 6 // a button of the shop
)

// component is a button, or a select menu, under a message.
type component struct {
	Type     int             `json:"type"`
	CustomID string          `json:"custom_id"`
	Style    int             `json:"style"`
	Label    string          `json:"label"`
	Emoji    json.RawMessage `json:"emoji"`
	URL      string          `json:"url"`
	Disabled bool            `json:"disabled"`
}

// componentRow is a row of components.
type componentRow struct {
	Type       int         `json:"type"`
	Components []component `json:"components"`
}

// checkComponents validates the rows under a message. Components of other layouts are refused.
func checkComponents(raw []json.RawMessage) error {
	if len(raw) > maxRows {
		return invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	var known []string
	for i, one := range raw {
		at := fmt.Sprintf("components.%d", i)
		var row componentRow
		switch {
		case json.Unmarshal(one, &row) != nil:
			return invalid(at, "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType")
		case row.Type != actionRow:
			return invalid(at+".type", "BASE_TYPE_CHOICES", "Value must be one of (1,).")
		case len(row.Components) == 0 || len(row.Components) > maxInRow:
			return invalid(at+".components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
		}
		for j, c := range row.Components {
			if err := c.check(fmt.Sprintf("%s.components.%d", at, j), len(row.Components)); err != nil {
				return err
			}
			if c.CustomID != "" && slices.Contains(known, c.CustomID) {
				return invalid(fmt.Sprintf("%s.components.%d.custom_id", at, j), "COMPONENT_CUSTOM_ID_DUPLICATED",
					"Component custom id cannot be duplicated")
			}
			known = append(known, c.CustomID)
		}
	}
	return nil
}

// check validates one component of a row with so many.
func (c component) check(at string, inRow int) error {
	isLink := c.Type == buttonType && c.Style == linkButton
	switch {
	case c.Type < buttonType || c.Type > 8 || c.Type == 4:
		return invalid(at+".type", "BASE_TYPE_CHOICES", "Value must be one of (2, 3, 5, 6, 7, 8).")
	case c.Type >= stringSelect && inRow > 1:
		return invalid(at, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width")
	case c.Type == buttonType && (c.Style < 1 || c.Style > premium):
		return invalid(at+".style", "BASE_TYPE_CHOICES", "Value must be one of (1, 2, 3, 4, 5, 6).")
	case isLink && c.URL == "":
		return invalid(at+".url", "BASE_TYPE_REQUIRED", "A url is required")
	case isLink && c.CustomID != "":
		return invalid(at, "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
			"A custom id and url cannot both be specified")
	case !isLink && c.Style != premium && c.CustomID == "":
		return invalid(at+".custom_id", "BASE_TYPE_REQUIRED", "A custom id is required")
	case utf8.RuneCountInString(c.CustomID) > maxCustomID:
		return tooLong(at+".custom_id", maxCustomID)
	case utf8.RuneCountInString(c.Label) > maxLabel:
		return tooLong(at+".label", maxLabel)
	case c.Type == buttonType && c.Style != premium && c.Label == "" && len(c.Emoji) == 0:
		return invalid(at, "BUTTON_COMPONENT_INVALID_LABEL_AND_EMOJI", "A label or an emoji is required")
	}
	return nil
}

// Buttons are the ids of a message's buttons by their labels.
func (m *Message) Buttons() map[string]string {
	all := map[string]string{}
	for _, raw := range m.Components {
		var row componentRow
		_ = json.Unmarshal(raw, &row) // it was validated
		for _, c := range row.Components {
			if c.Type == buttonType {
				all[c.Label] = c.CustomID
			}
		}
	}
	return all
}

// Press is TryPress for a button that must be there.
func (p Place) Press(by User, id, customID string) Interaction {
	given, err := p.TryPress(by, id, customID)
	must(err)
	return given
}

// TryPress presses a button of the bot under a message.
func (p Place) TryPress(by User, id, customID string) (given Interaction, err error) {
	err = p.withMessage(id, func(ch *channel, m *Message) error {
		if !ch.in(by) {
			return fmt.Errorf("%s is not a member", by.Name())
		}
		for _, raw := range m.Components {
			var row componentRow
			_ = json.Unmarshal(raw, &row) // it was validated
			for _, c := range row.Components {
				if c.Type == buttonType && c.CustomID == customID && !c.Disabled {
					given = p.s.interact(ch, by, m, map[string]any{"component_type": buttonType, "custom_id": customID,
						"id": 1})
					return nil
				}
			}
		}
		return fmt.Errorf("message %s has no button %s", id, customID)
	})
	return given, err
}
