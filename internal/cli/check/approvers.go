// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// maxReviewedAccounts bounds how many ServiceAccounts are checked, with a few access reviews each.
const maxReviewedAccounts = 200

// guardActions are the actions with which a ServiceAccount could approve its own plans, or switch off the need for approval.
func guardActions(namespace string) []action {
	actions := []action{
		{verb: "create", group: v1alpha1.GroupVersion.Group, resource: "bundleapprovals", namespace: namespace},
		{verb: "patch", resource: "namespaces", namespace: namespace},
		{verb: "update", resource: "namespaces", namespace: namespace},
	}
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		for _, verb := range []string{"patch", "update", "delete"} {
			actions = append(actions, action{verb: verb, group: "admissionregistration.k8s.io", resource: resource})
		}
	}
	return actions
}

// approvers names the ServiceAccounts that may approve, or change the guards, in namespaces that require approval: a user who
// may run Pods as them, or impersonate them, may do the same.
func (e *Examiner) approvers(ctx context.Context) {
	const check = "Approvers"
	var namespaces []string
	selector := v1alpha1.RequireApprovalLabel + "=" + v1alpha1.RequireApproval
	_, err := e.Each(ctx, kit.Listing{Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Selector: selector, Limit: maxReviewedAccounts},
		func(s kit.Sighting) { namespaces = append(namespaces, s.GetName()) })
	if err != nil {
		e.add(check, CheckUnknown, "", "the namespaces with the label %s cannot be listed: %s", selector, e.WhyNot(err))
		return
	}
	accounts, more, err := e.accountsIn(ctx, namespaces)
	if err != nil {
		e.add(check, CheckUnknown, "", "the ServiceAccounts of the namespaces with the label %s cannot be listed: %s", selector, e.WhyNot(err))
		return
	}
	var found []string
	for _, account := range accounts {
		allowed, err := e.allowed(ctx, account[0], account[1], guardActions(account[0]))
		if err != nil {
			e.add(check, CheckUnknown, "", "the permissions of ServiceAccount %s/%s cannot be asked for: %s", account[0], account[1], e.WhyNot(err))
			return
		}
		if len(allowed) > 0 {
			found = append(found, fmt.Sprintf("%s/%s may %s", account[0], account[1], strings.Join(allowed, ", ")))
		}
	}
	switch {
	case len(found) > 0:
		e.add(check, CheckWarning, "Remove these permissions, or make sure that no user who proposes plans may run Pods as, or impersonate, these ServiceAccounts: role edit permits both.",
			"in namespaces with the label %s, ServiceAccounts may approve or change the guards: %s", selector, strings.Join(found, "; "))
	case more:
		e.add(check, CheckUnknown, "", "none of the first %d ServiceAccounts in namespaces with the label %s may approve or change the guards; the others were not looked at", maxReviewedAccounts, selector)
	default:
		e.add(check, CheckOK, "", "no ServiceAccount of the %s with the label %s may approve or change the guards", view.Plural(len(namespaces), "namespace"), selector)
	}
}

// accountsIn lists the ServiceAccounts of namespaces as pairs of namespace and name; more tells that there are others.
func (e *Examiner) accountsIn(ctx context.Context, namespaces []string) (accounts [][2]string, more bool, err error) {
	slices.Sort(namespaces)
	for _, namespace := range namespaces {
		left := maxReviewedAccounts - len(accounts)
		if left <= 0 {
			return accounts, true, nil
		}
		others, err := e.Each(ctx, kit.Listing{Resource: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, Namespace: namespace, Limit: left},
			func(s kit.Sighting) { accounts = append(accounts, [2]string{namespace, s.GetName()}) })
		if err != nil {
			return nil, false, err
		}
		if more = more || others; len(accounts) > maxReviewedAccounts {
			return accounts[:maxReviewedAccounts], true, nil
		}
	}
	return accounts, more, nil
}

// allowed are the actions that a ServiceAccount may do, in words.
func (e *Examiner) allowed(ctx context.Context, namespace, account string, actions []action) ([]string, error) {
	var words []string
	for _, a := range actions {
		yes, err := e.may(ctx, namespace, account, a)
		if err != nil {
			return nil, err
		}
		if yes {
			words = append(words, a.String())
		}
	}
	return words, nil
}
