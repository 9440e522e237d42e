// SPDX-License-Identifier: Apache-2.0

// Package identity compares the clusters of a rollout by the identity that their API servers have. Names are given by users: a cluster that
// gets another name is not to be emptied under the former one.
package identity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// grace is how long a name that is no longer selected is kept, so that another name of the same cluster may follow in a later write.
	grace = 30 * time.Second
	// patience is how long after the creation of its BundleDeployment a cluster that was never reached counts as one that may be any other.
	patience = time.Hour
)

// Name is what is known of one name of a remote cluster.
type Name struct {
	// Selected tells that the rollout has the name in a wave, and Left since when it has not, as far as this process knows.
	Selected bool
	Left     time.Time
	// Target is the identity of the cluster; empty if it is not known.
	Target string
	// Server identifies the server and authorities by which Target was read; empty if they are not known. A cluster can claim any target, and
	// not the server of another one.
	Server string
	// Created is when its BundleDeployment was created; zero if there is none.
	Created time.Time
	// Compared tells that its BundleDeployment was compared with the cluster: what it wants there is known.
	Compared bool
}

// Leaving is what the removal of a name that is no longer selected has to heed. The zero value is nothing.
type Leaving struct {
	// Successor is a selected name of the same cluster, which takes the objects over; empty if there is none.
	Successor string
	// Proven tells that both names were reached by the same server. Else the successor only claims to be the same cluster.
	Proven bool
	// Waits says why nothing is removed yet, and Until when that ends; zero if it is not known.
	Waits string
	Until time.Time
}

// Duplicates are the selected names of clusters that have another name as well, selected or about to be removed.
func Duplicates(names map[string]Name) map[string]bool {
	count := map[string]int{}
	for _, one := range names {
		if one.Target != "" {
			count[one.Target]++
		}
	}
	duplicates := map[string]bool{}
	for name, one := range names {
		if one.Selected && count[one.Target] > 1 {
			duplicates[name] = true
		}
	}
	return duplicates
}

// Compare tells what the removal of each name that is no longer selected has to heed. The first line that holds decides:
//
//	its BundleDeployment has never reached a cluster           nothing: no objects are there
//	a selected name has the same target and server, compared   that takes over
//	a selected name has the same target and server             waits until it is compared
//	a selected name has the same target, none is compared      waits until it is compared
//	it left a moment ago                                       waits: the other name may follow
//	a selected name has no known cluster                       waits: it may be the same one
//	a selected name has the same target, compared              that takes over, if what it claims is true
//	else                                                       nothing
//
// A selected name that has no BundleDeployment yet, because it waits for its turn or for an approval, is waited for without a limit: the
// cluster would be emptied meanwhile. One that was never reached is waited for an hour.
func Compare(names map[string]Name, now time.Time) map[string]Leaving {
	sorted := slices.Sorted(maps.Keys(names))
	slices.SortStableFunc(sorted, func(a, b string) int { return names[a].Created.Compare(names[b].Created) })
	found := map[string]Leaving{}
	for name, one := range names {
		if one.Selected || one.Target == "" {
			continue
		}
		if leaving := compare(name, names, sorted, now); leaving != (Leaving{}) {
			found[name] = leaving
		}
	}
	return found
}

// Recheck is when to decide again without an event: after the pause of the decision itself, 0 if it has none, or when a name waits no longer.
func Recheck(leaving map[string]Leaving, now time.Time, pause time.Duration) time.Duration {
	for _, one := range leaving {
		if wait := one.Until.Sub(now); wait > 0 && (pause == 0 || wait < pause) {
			pause = wait
		}
	}
	return pause
}

func compare(name string, names map[string]Name, sorted []string, now time.Time) Leaving {
	one := names[name]
	best, unknown := Leaving{}, ""
	for _, other := range sorted {
		is := names[other]
		switch {
		case !is.Selected:
		case is.Target == one.Target:
			if found := successor(name, other, &one, &is); best.Successor == "" || found.weight() > best.weight() {
				best = found
			}
		case is.Target == "" && (is.Created.IsZero() || now.Before(is.Created.Add(patience))):
			unknown = cmp.Or(unknown, other) // the first one is waited for longest: those that are not created yet are before others
		}
	}
	switch {
	case best.Proven, best.Waits != "":
		return best
	case now.Before(one.Left.Add(grace)):
		return Leaving{Until: one.Left.Add(grace), Waits: fmt.Sprintf(
			"%s is no longer selected, and is removed in %s unless the same cluster has another name then", name, grace)}
	case unknown != "":
		waits := Leaving{Waits: fmt.Sprintf(
			"%s is not removed before the cluster %s, which may be the same one, was reached; to remove it now, delete its BundleDeployment", name, unknown)}
		if created := names[unknown].Created; !created.IsZero() {
			waits.Until = created.Add(patience)
		}
		return waits
	}
	return best
}

// successor is what the removal of one name has to heed of another one that has the same target.
func successor(name, other string, one, is *Name) Leaving {
	found := Leaving{Successor: other, Proven: one.Server != "" && is.Server == one.Server}
	if !is.Compared {
		found.Waits = fmt.Sprintf("%s is the same cluster as %s, and is not removed before the BundleDeployment of %s has a plan", name, other, other)
	}
	return found
}

// weight is greater for a successor that is proven, and then for one that is compared.
func (l Leaving) weight() int {
	weight := 0
	if l.Proven {
		weight = 2
	}
	if l.Waits == "" {
		weight++
	}
	return weight
}
