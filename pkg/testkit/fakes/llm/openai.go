package llm

import (
	"encoding/json"
	"errors"
	"strings"

	"arizuko/pkg/testkit/fakes/anthropic"
)

// parts is content of OpenAI's: a text, or a list of parts.
type parts string

// UnmarshalJSON takes both forms. Parts without text are left out.
func (p *parts) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*p = parts(text)
		return nil
	}
	var list []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, part := range list {
		*p += parts(part.Text) + "\n"
	}
	return nil
}

// responses is OpenAI's Responses API.
type responses struct{}

func (responses) request(body []byte) (anthropic.Request, error) {
	var q struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Tools  []struct {
			Name  string           `json:"name"`
			Tools []anthropic.Tool `json:"tools"` // of a namespace
		} `json:"tools"`
		Input []struct {
			Type      string `json:"type"`
			Role      string `json:"role"`
			Content   parts  `json:"content"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
			Output    parts  `json:"output"`
		} `json:"input"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return anthropic.Request{}, err
	}
	if !q.Stream {
		return anthropic.Request{}, errors.New("only streams are answered")
	}
	r := anthropic.Request{Model: q.Model}
	for _, t := range q.Tools {
		if len(t.Tools) == 0 {
			r.Tools = append(r.Tools, anthropic.Tool{Name: t.Name})
		}
		for _, inside := range t.Tools {
			r.Tools = append(r.Tools, anthropic.Tool{Name: t.Name + "/" + inside.Name})
		}
	}
	for _, item := range q.Input {
		switch {
		case item.Type == "function_call_output":
			r.Messages = append(r.Messages, anthropic.Message{Role: "user",
				Content: anthropic.Content{{Type: "tool_result", ToolUseID: item.CallID,
					Content: textOf(string(item.Output))}}})
		case item.Role == "user" || item.Role == "assistant":
			r.Messages = append(r.Messages, anthropic.Message{Role: item.Role, Content: textOf(string(item.Content))})
		}
	}
	return r, nil
}

func (responses) events(model string, reply anthropic.Reply, input int) []any {
	events := []any{object{"type": "response.created", "response": object{"id": "resp_1", "model": model}}}
	if reply.Text != "" {
		item := object{"type": "message", "role": "assistant", "id": "msg_1", "status": "in_progress",
			"content": []any{}}
		events = append(events, object{"type": "response.output_item.added", "output_index": 0, "item": item})
		for _, piece := range pieces(reply.Text) {
			events = append(events, object{"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
				"content_index": 0, "delta": piece})
		}
		done := object{"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
			"content": []any{object{"type": "output_text", "text": reply.Text, "annotations": []any{}}}}
		events = append(events, object{"type": "response.output_item.done", "output_index": 0, "item": done})
	}
	for i, use := range reply.Tools {
		item := object{"type": "function_call", "id": "fc_" + callID(i), "call_id": callID(i), "name": use.Name,
			"arguments": encoded(use.Input), "status": "completed"}
		if namespace, name, has := strings.Cut(use.Name, "/"); has {
			item["namespace"], item["name"] = namespace, name
		}
		events = append(events, object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	usage := object{
		"input_tokens": input, "output_tokens": len(reply.Text)/4 + 1, "total_tokens": input + len(reply.Text)/4 + 1,
		"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
	}
	return append(events, object{"type": "response.completed",
		"response": object{"id": "resp_1", "model": model, "usage": usage}})
}

// encoded is the input of a tool as a text.
func encoded(input any) string {
	data, err := json.Marshal(input)
	if err != nil {
		panic("llm: input of a tool: " + err.Error()) // a mistake of the test
	}
	return string(data)
}

// chat is OpenAI's Chat Completions API.
type chat struct{}

func (chat) request(body []byte) (anthropic.Request, error) {
	var q struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Tools  []struct {
			Function anthropic.Tool `json:"function"`
		} `json:"tools"`
		Messages []struct {
			Role    string `json:"role"`
			Content parts  `json:"content"`
			CallID  string `json:"tool_call_id"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return anthropic.Request{}, err
	}
	if !q.Stream {
		return anthropic.Request{}, errors.New("only streams are answered")
	}
	r := anthropic.Request{Model: q.Model}
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, t.Function)
	}
	for _, m := range q.Messages {
		switch m.Role {
		case "tool":
			r.Messages = append(r.Messages, anthropic.Message{Role: "user",
				Content: anthropic.Content{{Type: "tool_result", ToolUseID: m.CallID,
					Content: textOf(string(m.Content))}}})
		case "user", "assistant":
			r.Messages = append(r.Messages, anthropic.Message{Role: m.Role, Content: textOf(string(m.Content))})
		}
	}
	return r, nil
}

func (chat) events(model string, reply anthropic.Reply, input int) (events []any) {
	chunk := func(delta object, reason any) {
		choice := object{"index": 0, "delta": delta, "finish_reason": reason}
		events = append(events, object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
			"model": model, "choices": []any{choice}})
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	for _, piece := range pieces(reply.Text) {
		chunk(object{"content": piece}, nil)
	}
	for i, use := range reply.Tools {
		chunk(object{"tool_calls": []any{object{
			"index": i, "id": callID(i), "type": "function", "function": object{"name": use.Name,
				"arguments": encoded(use.Input)},
		}}}, nil)
	}
	reason := "stop"
	if len(reply.Tools) > 0 {
		reason = "tool_calls"
	}
	chunk(object{}, reason)
	output := len(reply.Text)/4 + 1
	return append(events, object{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": []any{},
		"usage": object{"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output},
	})
}
