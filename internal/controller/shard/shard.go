// SPDX-License-Identifier: Apache-2.0

// Package shard selects the objects that a controller reconciles, if several instances
// of it share the work by a label selector.
package shard

import (
	"fmt"
	"maps"

	"github.com/fluxcd/pkg/runtime/leaderelection"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Shard selects the objects that an instance reconciles. The zero value selects all of
// them.
type Shard struct {
	text     string
	selector labels.Selector // nil for everything
	keys     []string        // label keys of the selector
}

// Parse reads a label selector in the syntax of kubectl; "" selects everything.
func Parse(selector string) (Shard, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return Shard{}, fmt.Errorf("--watch-label-selector %q: %w", selector, err)
	}
	requirements, _ := parsed.Requirements()
	if len(requirements) == 0 {
		return Shard{}, nil
	}
	s := Shard{text: selector, selector: parsed}
	for _, requirement := range requirements {
		s.keys = append(s.keys, requirement.Key())
	}
	return s, nil
}

// Owns tells whether an object belongs to the shard.
func (s Shard) Owns(object metav1.Object) bool {
	return s.selector == nil || s.selector.Matches(labels.Set(object.GetLabels()))
}

// Lease names the lease of the shard's leader; each shard has one of its own.
func (s Shard) Lease(controller string) string {
	if s.selector == nil {
		return controller
	}
	return leaderelection.GenerateID(controller, s.text)
}

// Listed restricts a list to the shard.
func (s Shard) Listed() client.ListOption {
	selector := s.selector
	if selector == nil {
		selector = labels.Everything()
	}
	return client.MatchingLabelsSelector{Selector: selector}
}

// CopyLabels copies the labels of the selector from an owner to an object, so that both
// are in the same shard. It returns whether that changed anything. Other labels do not
// change.
func (s Shard) CopyLabels(from, to metav1.Object) bool {
	before := to.GetLabels()
	after := maps.Clone(before)
	if after == nil {
		after = map[string]string{}
	}
	for _, key := range s.keys {
		if value, found := from.GetLabels()[key]; found {
			after[key] = value
		} else {
			delete(after, key)
		}
	}
	if maps.Equal(before, after) {
		return false
	}
	to.SetLabels(after)
	return true
}

// Predicate passes events of objects of the shard: updates that changed passes, updates
// of a label of the selector, and the update by which an object leaves the shard, so
// that it is forgotten here.
func (s Shard) Predicate(changed predicate.Predicate) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return s.Owns(e.Object) && changed.Create(e) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return s.Owns(e.Object) && changed.Delete(e) },
		GenericFunc: func(e event.GenericEvent) bool { return s.Owns(e.Object) && changed.Generic(e) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if !s.Owns(e.ObjectNew) {
				return s.Owns(e.ObjectOld)
			}
			return s.moved(e.ObjectOld, e.ObjectNew) || changed.Update(e)
		},
	}
}

// moved tells whether two versions of an object differ in a label of the selector.
func (s Shard) moved(before, after metav1.Object) bool {
	for _, key := range s.keys {
		was, had := before.GetLabels()[key]
		is, has := after.GetLabels()[key]
		if was != is || had != has {
			return true
		}
	}
	return false
}
