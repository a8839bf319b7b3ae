package llm

import (
	"cmp"
	"encoding/json"
	"strings"

	"arizuko/pkg/testkit/fakes/anthropic"
)

// gemini is Google's API. It names the model in the path.
type gemini struct{}

func (gemini) request(body []byte) (anthropic.Request, error) {
	var q struct {
		Tools []struct {
			Functions []anthropic.Tool `json:"functionDeclarations"`
		} `json:"tools"`
		Contents []struct {
			Role  string `json:"role"`
			Parts []struct {
				Text     string `json:"text"`
				Response *struct {
					Name     string          `json:"name"`
					Response json.RawMessage `json:"response"`
				} `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return anthropic.Request{}, err
	}
	var r anthropic.Request
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, t.Functions...)
	}
	for _, c := range q.Contents {
		m := anthropic.Message{Role: c.Role}
		if c.Role == "model" {
			m.Role = "assistant"
		}
		for _, p := range c.Parts {
			switch {
			case p.Response != nil:
				m.Content = append(m.Content, anthropic.Block{Type: "tool_result", ToolUseID: p.Response.Name,
					Content: textOf(string(p.Response.Response))})
			case p.Text != "":
				m.Content = append(m.Content, textOf(p.Text)...)
			}
		}
		if len(m.Content) > 0 {
			r.Messages = append(r.Messages, m)
		}
	}
	return r, nil
}

func (gemini) events(_ string, reply anthropic.Reply, input int) (events []any) {
	output := len(reply.Text)/4 + 1
	event := func(part object, reason any) {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": []any{part}}}
		if reason != nil {
			candidate["finishReason"] = reason
		}
		events = append(events, object{
			"candidates": []any{candidate},
			"usageMetadata": object{"promptTokenCount": input, "candidatesTokenCount": output,
				"totalTokenCount": input + output},
		})
	}
	for _, use := range reply.Tools {
		event(object{"functionCall": object{"name": use.Name, "args": use.Input}}, nil)
	}
	all := pieces(reply.Text)
	for _, piece := range all[:len(all)-1] {
		event(object{"text": piece}, nil)
	}
	event(object{"text": all[len(all)-1]}, "STOP")
	return events
}

// geminiWhole is an answer in one piece. Gemini CLI asks a small model so which model suits a request, and wants JSON
// by a schema: every field gets its first possible value.
func geminiWhole(body []byte, text string) any {
	var q struct {
		Config struct {
			Schema     *schema `json:"responseSchema"`
			JSONSchema *schema `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	_ = json.Unmarshal(body, &q) // it was read before
	if s := cmp.Or(q.Config.JSONSchema, q.Config.Schema); s != nil {
		made, _ := json.Marshal(s.value())
		text = string(made)
	}
	return object{"candidates": []any{object{"index": 0, "finishReason": "STOP",
		"content": object{"role": "model", "parts": []any{object{"text": text}}}}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
}

type schema struct {
	Type       string            `json:"type"`
	Enum       []string          `json:"enum"`
	Properties map[string]schema `json:"properties"`
}

func (s schema) value() any {
	switch kind := strings.ToLower(s.Type); {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case kind == "object":
		all := object{}
		for name, of := range s.Properties {
			all[name] = of.value()
		}
		return all
	case kind == "array":
		return []any{}
	case kind == "boolean":
		return false
	case kind == "integer", kind == "number":
		return 1
	}
	return "made up"
}
