// SPDX-License-Identifier: Apache-2.0

package rights

// Missing are the permissions that an account lacks.
type Missing struct {
	Needs []Need
	// Demands hold, as their Rights, only the missing permissions, and of those the
	// first: about MostMissing in all, and at least one each.
	Demands []Demand
}

// MostMissing is how many missing permissions are named. A user reads fewer,
// and a role may be bound in a thousand namespaces.
const MostMissing = 1000

// None tells that nothing is missing.
func (m Missing) None() bool { return len(m.Needs)+len(m.Demands) == 0 }

// FindMissing finds the permissions that an account lacks. Demands of the same role at the same place
// share one result.
func FindMissing(needs []Need, demands []Demand, held Held) Missing {
	var missing Missing
	for _, need := range needs {
		if !held.Covers(need.Place(), need.Right) {
			missing.Needs = append(missing.Needs, need)
		}
	}
	c := comparison{held: held, known: map[granted][]Right{}, left: MostMissing}
	for _, demand := range demands {
		if held.Covers(demand.Namespace, demand.Instead) {
			continue
		}
		demand.Rights = c.without(demand)
		if demand.Unknown || len(demand.Rights) > 0 {
			missing.Demands = append(missing.Demands, demand)
		}
	}
	return missing
}

// comparison compares demands with the held permissions.
type comparison struct {
	held  Held
	known map[granted][]Right // the missing permissions
	left  int                 // of MostMissing
}

// granted identifies the permissions of one role at one place. Many bindings may name a role:
// its list is identified by its address in memory, and compared once.
type granted struct {
	first *Right
	count int
	at    string
}

// without returns the first permissions of a demand that the account does not hold.
func (c *comparison) without(demand Demand) []Right {
	if len(demand.Rights) == 0 {
		return nil
	}
	of := granted{first: &demand.Rights[0], count: len(demand.Rights), at: demand.Namespace}
	if c.held[of.at] == nil {
		of.at = "" // there it holds its cluster-wide permissions
	}
	lacking, found := c.known[of]
	if found {
		return lacking
	}
	for _, right := range demand.Rights {
		if c.held.Covers(of.at, right) {
			continue
		}
		lacking = append(lacking, right)
		if c.left--; c.left <= 0 {
			break
		}
	}
	c.known[of] = lacking
	return lacking
}

// Place is where the API server checks the permission: for a Namespace, inside of it.
func (n Need) Place() string {
	if n.Right.Group == namespaces.Group && n.Right.Resource == namespaces.Resource {
		return n.Right.Name
	}
	return n.Namespace
}
