// SPDX-License-Identifier: Apache-2.0

package rights

// Missing is what an account lacks.
type Missing struct {
	Needs []Need
	// Demands hold, as their Rights, only what is lacking of them.
	Demands []Demand
}

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
	known := map[granted][]Right{}
	for _, demand := range demands {
		if held.Covers(demand.Namespace, demand.Instead) {
			continue
		}
		demand.Rights = held.without(demand, known)
		if demand.Unknown || len(demand.Rights) > 0 {
			missing.Demands = append(missing.Demands, demand)
		}
	}
	return missing
}

// granted are the rights of one role at one place. Many bindings may name a role:
// its list is told by where it is in memory, and looked through once.
type granted struct {
	first *Right
	count int
	at    string
}

// without gives the rights of a demand that the account does not hold.
func (h Held) without(demand Demand, known map[granted][]Right) []Right {
	if len(demand.Rights) == 0 {
		return nil
	}
	of := granted{first: &demand.Rights[0], count: len(demand.Rights), at: demand.Namespace}
	if h[of.at] == nil {
		of.at = "" // there it holds what it holds everywhere
	}
	lacking, found := known[of]
	if !found {
		for _, right := range demand.Rights {
			if !h.Covers(of.at, right) {
				lacking = append(lacking, right)
			}
		}
		known[of] = lacking
	}
	return lacking
}

// Place is where the API server looks for the right: a namespace is authorized in itself.
func (n Need) Place() string {
	if n.Right.Group == namespaces.Group && n.Right.Resource == namespaces.Resource {
		return n.Right.Name
	}
	return n.Namespace
}
