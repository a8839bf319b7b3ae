package main

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"arizuko/pkg/agentproto"
)

// The parts of the protocol's schema that are used. Other fields are ignored, so that agents may have more of them, and
// fields of another form are left out.

// protocolVersion is the one that this program speaks.
const protocolVersion = 1

// Methods of agents.
const (
	methodInitialize   = "initialize"
	methodAuthenticate = "authenticate"
	methodNew          = "session/new"
	methodResume       = "session/resume"
	methodLoad         = "session/load"
	methodPrompt       = "session/prompt"
	methodCancel       = "session/cancel"
	methodSetOption    = "session/set_config_option"
	methodSetModel     = "session/set_model"
	methodSetMode      = "session/set_mode"
	// methodSteer is an extension: an agent that announces it takes a message into the running turn.
	methodSteer = "_session/steering"
)

// Methods of clients.
const (
	methodUpdate        = "session/update"
	methodPermission    = "session/request_permission"
	methodElicit        = "elicitation/create"
	methodCancelRequest = "$/cancel_request"
)

// number is a number, which some agents write as a text. Anything else is 0.
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	value, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		value = 0
	}
	*n = number(value)
	return nil
}

// maxCount caps a count, so that sums of counts do not overflow.
const maxCount = 1e15

// count is the number as a count of tokens.
func (n number) count() int64 { return int64(min(max(n, 0), maxCount)) }

type rpcError struct {
	Code    number          `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Codes of errors.
const (
	codeMethodNotFound = -32601
	codeInternal       = -32603
	codeAuthRequired   = -32000
	codeNotFound       = -32002
)

// UnmarshalJSON also reads an error of another form, which is its message then: a request that has failed must not wait
// for ever.
func (e *rpcError) UnmarshalJSON(data []byte) error {
	type plain rpcError
	if json.Unmarshal(data, (*plain)(e)) != nil && e.Message == "" {
		e.Message = agentproto.Truncate(strings.Trim(string(data), `"`), maxNoise)
	}
	return nil
}

// text is the message with its details, in one line.
func (e *rpcError) text() string {
	var data struct {
		Details string `json:"details"`
		Message string `json:"message"`
		Kind    string `json:"errorKind"`
	}
	parts := []string{e.Message}
	if json.Unmarshal(e.Data, &data) != nil { // a text in some agents
		_ = json.Unmarshal(e.Data, &data.Details)
	}
	for _, more := range []string{data.Details, data.Message, data.Kind} {
		if more != "" && !strings.Contains(e.Message, more) {
			parts = append(parts, more)
		}
	}
	return strings.Join(strings.Fields(strings.Join(parts, ": ")), " ")
}

type initialized struct {
	ProtocolVersion number `json:"protocolVersion"`
	Agent           struct {
		Meta struct {
			ClaudeCode json.RawMessage `json:"claudeCode"`
		} `json:"_meta"`
		LoadSession bool `json:"loadSession"`
		MCP         struct {
			HTTP bool `json:"http"`
		} `json:"mcpCapabilities"`
		Prompt struct {
			Image bool `json:"image"`
		} `json:"promptCapabilities"`
		Session struct {
			Resume       json.RawMessage `json:"resume"`
			SystemPrompt json.RawMessage `json:"systemPrompt"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	Info struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"agentInfo"`
	Auth []authMethod `json:"authMethods"`
	Meta struct {
		Steering struct {
			Supported bool `json:"supported"`
		} `json:"steering"`
	} `json:"_meta"`
}

type authMethod struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Vars []struct {
		Name string `json:"name"`
	} `json:"vars"`
}

// has reports whether an optional object is there.
func has(object json.RawMessage) bool {
	return len(object) > 0 && string(object) != "null" && string(object) != "false"
}

// opened is the response to session/new, resume and load.
type opened struct {
	SessionID string         `json:"sessionId"` // of session/new
	Options   []configOption `json:"configOptions"`
	Models    struct {
		Current   string      `json:"currentModelId"`
		Available []available `json:"availableModels"`
	} `json:"models"`
	Modes struct {
		Current   string      `json:"currentModeId"`
		Available []available `json:"availableModes"`
	} `json:"modes"`
}

// available is a model or a mode.
type available struct {
	ModelID string `json:"modelId"` // of a model
	ID      string `json:"id"`      // of a mode
	Name    string `json:"name"`
}

// configOption is a setting of a session. Only those of type select are used.
type configOption struct {
	ID       string         `json:"id"`
	Category string         `json:"category"`
	Type     string         `json:"type"`
	Current  any            `json:"currentValue"` // a text with type select
	Choices  []optionChoice `json:"options"`
}

// optionChoice is a value of an option, or a group of values.
type optionChoice struct {
	Value   string         `json:"value"`
	Name    string         `json:"name"`
	Grouped []optionChoice `json:"options"`
}

type contentBlock struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// of an image, in base64; without a uri, which codex-acp would prefer to the data
	Data string `json:"data,omitempty"`
	MIME string `json:"mimeType,omitempty"`
}

func textBlock(text string) contentBlock { return contentBlock{Type: "text", Text: text} }

// promptResult is the response to session/prompt.
type promptResult struct {
	StopReason string `json:"stopReason"`
	Usage      *struct {
		Input      number `json:"inputTokens"`
		Output     number `json:"outputTokens"`
		CacheRead  number `json:"cachedReadTokens"`
		CacheWrite number `json:"cachedWriteTokens"`
	} `json:"usage"`
	Meta struct {
		Quota struct {
			Tokens struct { // of Gemini
				Input  number `json:"input_tokens"`
				Output number `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	} `json:"_meta"`
}

// Reasons why a turn has stopped.
const (
	stopEnd       = "end_turn"
	stopTokens    = "max_tokens"
	stopRequests  = "max_turn_requests"
	stopRefusal   = "refusal"
	stopCancelled = "cancelled"
)
