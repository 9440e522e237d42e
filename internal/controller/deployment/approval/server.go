// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// serverKey is the key in the digest of a plan that contains nothing but the server.
const serverKey = "satchel.dev/server/v1"

// Server returns what waits for an approval before anything but the identity of its cluster is asked of the server to which the
// kubeconfig leads; nil if nothing does. A dry run sends the content of the bundle there, which is for the server of the executed plan. The first
// line that holds decides.
//
//	no plan was executed, or it is on this cluster    nothing: the plan is the first proposal, with its server
//	the server and its authorities are the same       nothing
//	the mode is Automatic, and holds                  nothing
//	it is approved, and not denied                    nothing, and the plan need not be approved for this again
//	else                                              waits
func (a Approvals) Server(ctx context.Context, d *v1alpha1.BundleDeployment, target, reach string, now time.Time) (*State, error) {
	c, err := a.server(d, target, reach)
	if c == nil || err != nil {
		return nil, err
	}
	if demanded, err := a.Demanded(ctx, d); err != nil || !demanded {
		return nil, err
	}
	if err := a.decisions(ctx, d, now, c); err != nil || c.isApproved() {
		return nil, err
	}
	return c, nil
}

// server is the plan to use another server than that of the executed plan; nil if it is the same.
func (a Approvals) server(d *v1alpha1.BundleDeployment, target, reach string) (*State, error) {
	record := a.Proven(d)
	if record == nil || reach == "" {
		return nil, nil
	}
	if len(differs(record.KubeConfigReach, reach, reachParts[:2])) == 0 {
		return nil, nil
	}
	terms, err := termsOf(d, target, reach).Digest()
	if err != nil {
		return nil, err
	}
	return &State{
		Digest: digest.Plan(string(d.UID), digest.Key(serverKey, terms), record.Plan, nil), record: record, reach: reach,
		head: "the server of the kubeconfig",
		Asks: []string{fmt.Sprintf("the kubeconfig of spec.target (%s) differs in %s from that of the executed plan; until this is approved, only the identity of the cluster is read there",
			kubeConfigText(effective.RemoteCluster(d.Spec.Target.ClusterReference)), strings.Join(differs(record.KubeConfigReach, reach, reachParts), ", "))},
	}, nil
}

// approvedServer is the digest of the approved plan to use another server; "" if there is none.
func (a Approvals) approvedServer(ctx context.Context, q Question) (string, error) {
	c, err := a.server(q.Object, q.Listed.Target, q.Reach)
	if c == nil || err != nil {
		return "", err
	}
	if err := a.decisions(ctx, q.Object, q.Now, c); err != nil || !c.isApproved() {
		return "", err
	}
	return c.Digest, nil
}

// isApproved tells whether a decision approves the plan, and none denies it.
func (c *State) isApproved() bool { return c.approved != nil && c.Denied == nil }
