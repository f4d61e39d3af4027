package match

// Offer is what an agent can do.
type Offer struct {
	Repos                                []Repo
	Languages, Environments, Tools, Tags []string
}

// Repo is a repository that an agent has, and what it can do in it.
type Repo struct {
	Name             string
	Languages, Tools []string
}

// Empty reports whether an agent offers nothing, and so fits nothing.
func (o *Offer) Empty() bool {
	return len(o.Repos) == 0 && len(o.Languages) == 0 && len(o.Environments) == 0 && len(o.Tools) == 0 && len(o.Tags) == 0
}

// Demand is what a task asks of its agent. Prefer is the name of an agent.
type Demand struct {
	Repo                                 string
	Languages, Environments, Tools, Tags []string
	Prefer                               string
}

// Standing is what changes about an agent all the time. Running counts against
// its capacity; Load, which includes what it is yet to begin, decides between
// equals.
type Standing struct {
	Online                  bool
	Running, Capacity, Load int
}

// Conditions narrow a search to some of those who fit.
type Conditions struct {
	Online bool   // only agents that are online
	Free   bool   // only agents with less load than capacity
	Not    string // never this agent
}

// Points, as the package comment says them.
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
