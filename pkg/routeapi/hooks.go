package routeapi

import "arizuko/pkg/groupconfig"

// HooksPath is where routd adds and removes hooks, below it where it changes their secrets and tests them.
const (
	HooksPath  = "/v1/hooks"
	HookSecret = HooksPath + "/secret"
	HookTest   = HooksPath + "/test"
)

// NewHook adds a hook to a group, by POST HooksPath. Its id is made by routd, and so is a secret that is "".
type NewHook struct {
	Folder string           `json:"folder"`
	Name   string           `json:"name"`
	Hook   groupconfig.Hook `json:"hook"`
	Secret string           `json:"secret"`
}

// HookAdded is the answer. Secret is one that routd has made, which is shown nowhere else.
type HookAdded struct {
	ID     string `json:"id"` // the end of its address: /hook/ID
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"`
}

// HookChange names a hook whose secret is replaced by POST HookSecret, or that is tested by POST HookTest.
type HookChange struct {
	ID      string `json:"id"`
	Secret  string `json:"secret"`          // the new one, "" for one that routd makes
	Overlap int64  `json:"overlap_seconds"` // how long the former one counts
	Event   string `json:"event"`           // of the test delivery, "" for the first one of the kind
}

// HookTested is what became of a test delivery that dashd took: a message and its state.
type HookTested struct {
	Event string `json:"event"`
	ID    int64  `json:"id"`
	State string `json:"state"`
}
