// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// DeploymentExtra is the key of the user extra that each impersonated write carries. Its value
// is the BundleDeployment, namespace/name: admission policies and the audit log see it.
const DeploymentExtra = "satchel.dev/deployment"

var deploymentHeader = "Impersonate-Extra-" + url.PathEscape(DeploymentExtra)

// marking says whether writes carry the extra. With a nil marking they do not: the client does not impersonate.
type marking interface {
	marks(ctx context.Context) (bool, error)
}

// errUnmarked is a programming error: see Client.For.
var errUnmarked = errors.New("a write as a service account needs the deployment for which it is done")

// write sends a request that changes something, with the extra.
func (c *Client) write(ctx context.Context, request *rest.Request, accept string) (*Answer, error) {
	if c.marking == nil {
		return c.sendAccepting(ctx, request, accept)
	}
	if c.deployment == "" {
		return nil, errUnmarked
	}
	marks, err := c.marking.marks(ctx)
	if err != nil {
		return nil, err
	}
	if marks {
		request.SetHeader(deploymentHeader, c.deployment)
	}
	return c.sendAccepting(ctx, request, accept)
}

// always is the cluster of the controller, which may impersonate the extra.
type always struct{}

func (always) marks(context.Context) (bool, error) { return true, nil }

// permissionAge is how long the answer of a remote cluster about the extra is used.
const permissionAge = 10 * time.Minute

// permitted is a cluster where the user, of a kubeconfig or of the command line, may lack the
// permission to impersonate the extra. Then writes are sent without it: admission policies of that
// cluster are up to its administrators.
type permitted struct {
	user *Client
	now  func() time.Time

	mu      sync.Mutex
	allowed bool
	asked   time.Time
}

func (p *permitted) marks(ctx context.Context) (bool, error) {
	p.mu.Lock()
	known, allowed := !p.asked.IsZero() && p.now().Sub(p.asked) < permissionAge, p.allowed
	p.mu.Unlock()
	if known {
		return allowed, nil
	}
	allowed, err := p.user.Allowed(ctx, authorizationv1.ResourceAttributes{
		Group: "authentication.k8s.io", Resource: "userextras", Subresource: DeploymentExtra, Verb: "impersonate",
	})
	if err != nil && !apierrors.IsForbidden(err) {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed, p.asked = allowed, p.now()
	return allowed, nil
}
