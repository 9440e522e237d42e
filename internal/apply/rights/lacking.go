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

// Lacking finds what an account lacks.
func Lacking(needs []Need, demands []Demand, held Held) Missing {
	var missing Missing
	for _, need := range needs {
		if !held.Covers(need.Place(), need.Right) {
			missing.Needs = append(missing.Needs, need)
		}
	}
	for _, demand := range demands {
		if held.Covers(demand.Namespace, demand.Instead) {
			continue
		}
		lacking := demand
		lacking.Rights = nil
		for _, right := range demand.Rights {
			if !held.Covers(demand.Namespace, right) {
				lacking.Rights = append(lacking.Rights, right)
			}
		}
		if demand.Unknown || len(lacking.Rights) > 0 {
			missing.Demands = append(missing.Demands, lacking)
		}
	}
	return missing
}

// Place is where the API server looks for the right: a namespace is authorized in itself.
func (n Need) Place() string {
	if n.Right.Group == namespaces.Group && n.Right.Resource == namespaces.Resource {
		return n.Right.Name
	}
	return n.Namespace
}
