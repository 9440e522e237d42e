// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/rights"
)

// question asks whether the ServiceAccount has one permission.
type question struct {
	place string // a namespace; empty: in the cluster, and in all namespaces
	right rights.Right
}

// generally is the same question about all objects.
func generally(q question) question {
	q.right.Name = ""
	return q
}

// everywhere is the same question about all objects of all namespaces.
func everywhere(q question) question { return question{right: generally(q).right} }

func itself(q question) question { return q }

// oneByOne asks for each permission by itself. Of a demand only the permission that stands
// in for the others is asked for: RBAC's escalation check looks at rules alone.
func (a *permissionCheck) oneByOne(ctx context.Context, missing rights.Missing) (rights.Missing, error) {
	questions := make([]question, 0, len(missing.Needs)+len(missing.Demands))
	for _, need := range missing.Needs {
		questions = append(questions, question{need.Place(), need.Right})
	}
	for _, demand := range missing.Demands {
		questions = append(questions, question{demand.Namespace, demand.Instead})
	}
	denied, err := a.denied(ctx, questions)
	if err != nil {
		return rights.Missing{}, err
	}
	var left rights.Missing
	for i, need := range missing.Needs {
		if denied[i] {
			left.Needs = append(left.Needs, need)
		}
	}
	for i, demand := range missing.Demands {
		if denied[len(missing.Needs)+i] {
			left.Demands = append(left.Demands, demand)
		}
	}
	return left, nil
}

// denied tells for each question whether the answer is no. What is allowed cluster-wide
// is not asked again by namespace, and what is allowed for all objects not by object.
func (a *permissionCheck) denied(ctx context.Context, questions []question) ([]bool, error) {
	answers, left := map[question]bool{}, mostQuestions
	allowed := func(q question) bool { return answers[everywhere(q)] || answers[generally(q)] || answers[q] }
	for _, level := range []struct {
		wide, narrow func(question) question
		share        int // of those that are left; the last ones tell most
	}{{everywhere, generally, 2}, {generally, itself, 2}, {itself, nil, 1}} {
		var open []question
		for _, q := range questions {
			if _, asked := answers[level.wide(q)]; !asked && !allowed(q) {
				open = append(open, q)
			}
		}
		list := sparing(open, level.wide, level.narrow)
		list = list[:min(len(list), left/level.share)]
		left -= len(list)
		if err := a.answer(ctx, list, answers); err != nil {
			return nil, err
		}
	}
	denied := make([]bool, len(questions))
	for i, q := range questions {
		_, asked := answers[q]
		denied[i] = asked && !allowed(q)
		if !asked && !allowed(q) {
			a.unknown++
		}
	}
	return denied, nil
}

// sparing are the wide questions, each once, that stand for several narrow ones; or
// all of them where there are no narrower ones.
func sparing(questions []question, wide, narrow func(question) question) []question {
	first, chosen := map[question]question{}, map[question]bool{}
	var list []question
	for _, q := range questions {
		at := wide(q)
		if narrow != nil {
			if _, found := first[at]; !found {
				first[at] = narrow(q)
			}
			if first[at] == narrow(q) {
				continue
			}
		}
		if !chosen[at] {
			chosen[at] = true
			list = append(list, at)
		}
	}
	return list
}

// answer asks the questions and notes the answers.
func (a *permissionCheck) answer(ctx context.Context, questions []question, answers map[question]bool) error {
	type answer struct {
		allowed bool
		err     error
	}
	list := parallel.Each(ctx, parallel.Default, questions, func(ctx context.Context, q question) answer {
		allowed, err := a.client.Allowed(ctx, authorizationv1.ResourceAttributes{
			Namespace: q.place, Verb: q.right.Verb, Group: q.right.Group, Resource: q.right.Resource, Name: q.right.Name,
		})
		return answer{allowed, err}
	})
	errs := []error{ctx.Err()}
	for i, answer := range list {
		answers[questions[i]] = answer.allowed
		errs = append(errs, answer.err)
	}
	return objecterror.Join(errs)
}
