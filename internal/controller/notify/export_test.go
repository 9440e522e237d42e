// SPDX-License-Identifier: Apache-2.0

package notify

// Len is how many objects and namespaces are remembered.
func (p *Pace) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.known)
}
