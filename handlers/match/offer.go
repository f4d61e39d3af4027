package match

// Offer lists what an agent can do.
type Offer struct {
	Repos                                []Repo
	Languages, Environments, Tools, Tags []string
}

// Repo is a repository of an agent, and what the agent can do in it.
type Repo struct {
	Name             string
	Languages, Tools []string
}

// Empty reports whether an agent offers nothing and so fits nothing.
func (o *Offer) Empty() bool {
	return len(o.Repos) == 0 && len(o.Languages) == 0 && len(o.Environments) == 0 && len(o.Tools) == 0 && len(o.Tags) == 0
}

// Demand lists what a task requires of its agent. Prefer is the name of an agent.
type Demand struct {
	Repo                                 string
	Languages, Environments, Tools, Tags []string
	Prefer                               string
}

// Standing is the changing state of an agent. Running counts against its capacity. Load
// includes tasks that have not begun and breaks ties.
type Standing struct {
	Online                  bool
	Running, Capacity, Load int
}

// Conditions restrict a search.
type Conditions struct {
	Online bool   // only agents that are online
	Free   bool   // only agents with less load than capacity
	Not    string // never this agent
}

// Points; see the package documentation.
const (
	disqualified      = -1
	repoPoints        = 100
	languagePoints    = 50
	environmentPoints = 30
	toolPoints        = 10
	tagPoints         = 5
	preferPoints      = 200
	onlinePoints      = 25
	capacityPoints    = 50

	// unit divides all soft points, so that sums of them have fewer bits.
	unit = 5
)
