// SPDX-License-Identifier: Apache-2.0

package rights

// Missing is what an account lacks.
type Missing struct {
	Needs []Need
	// Demands hold, as their Rights, only what is lacking of them, and of that the
	// first: about MostLacking in all, and at least one each.
	Demands []Demand
}

// MostLacking is how many rights that are lacking are named. A person reads fewer,
// and a role may be bound in a thousand namespaces.
const MostLacking = 1000

// None tells that nothing is missing.
func (m Missing) None() bool { return len(m.Needs)+len(m.Demands) == 0 }

// Lacking finds what an account lacks. Demands of the same role at the same place
// lack the same, and share it.
func Lacking(needs []Need, demands []Demand, held Held) Missing {
	var missing Missing
	for _, need := range needs {
		if !held.Covers(need.Place(), need.Right) {
			missing.Needs = append(missing.Needs, need)
		}
	}
	c := comparison{held: held, known: map[granted][]Right{}, left: MostLacking}
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

// comparison is of what is demanded with what is held.
type comparison struct {
	held  Held
	known map[granted][]Right // what is lacking
	left  int                 // of MostLacking
}

// granted are the rights of one role at one place. Many bindings may name a role:
// its list is told by where it is in memory, and looked through once.
type granted struct {
	first *Right
	count int
	at    string
}

// without gives the first rights of a demand that the account does not hold.
func (c *comparison) without(demand Demand) []Right {
	if len(demand.Rights) == 0 {
		return nil
	}
	of := granted{first: &demand.Rights[0], count: len(demand.Rights), at: demand.Namespace}
	if c.held[of.at] == nil {
		of.at = "" // there it holds what it holds everywhere
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

// Place is where the API server looks for the right: a namespace is authorized in itself.
func (n Need) Place() string {
	if n.Right.Group == namespaces.Group && n.Right.Resource == namespaces.Resource {
		return n.Right.Name
	}
	return n.Namespace
}
