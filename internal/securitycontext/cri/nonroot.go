package cri

import (
	"fmt"
	"math"
	"strings"
)

// containerAdministrator is what Windows has nearest to root. Names of Windows accounts have no case.
const containerAdministrator = "ContainerAdministrator"

// refuseAdministrator is runAsNonRoot on Windows: the container administrator is refused, whether the pod or the image
// names it. Other accounts pass, and so does an image without a user: Windows has no user numbers.
func refuseAdministrator(c Container) error {
	if !isTrue(c.effective().RunAsNonRoot) {
		return nil
	}
	if asked := userName(c.effective().WindowsOptions); asked != "" {
		if isAdministrator(asked) {
			return fmt.Errorf("container %q has runAsNonRoot, but its runAsUserName is %q, which is the administrator of the container: "+
				"set windowsOptions.runAsUserName to another user, such as ContainerUser", c.Name, asked)
		}
		return nil
	}
	if isAdministrator(c.Image.Name) {
		return fmt.Errorf("container %q has runAsNonRoot, but its image runs as %q, which is the administrator of the container: "+
			"set windowsOptions.runAsUserName to another user, such as ContainerUser", c.Name, c.Image.Name)
	}
	return nil
}

// isAdministrator takes the account with or without its domain, which Windows calls `User Manager`.
func isAdministrator(user string) bool {
	if i := strings.LastIndexByte(user, '\\'); i >= 0 {
		user = user[i+1:]
	}
	return strings.EqualFold(user, containerAdministrator)
}

// refuseRoot is runAsNonRoot on Linux: root is refused, and an image that names its user by a word, as only its own
// /etc/passwd has the number.
func refuseRoot(c Container) error {
	effective := c.effective()
	if !isTrue(effective.RunAsNonRoot) {
		return nil
	}
	const mend = "set runAsUser to a number above 0"
	if effective.RunAsUser != nil {
		if *effective.RunAsUser == 0 {
			return fmt.Errorf("container %q has runAsNonRoot, but its runAsUser is 0, which is root: %s", c.Name, mend)
		}
		return nil
	}
	switch uid := c.Image.UID; {
	case uid == nil && c.Image.Name != "":
		return fmt.Errorf("container %q has runAsNonRoot, but its image runs as %q, of which cannot be known whether it is root: %s", c.Name, c.Image.Name, mend)
	case uid == nil:
		return fmt.Errorf("container %q has runAsNonRoot, but its image names no user, which is root: %s", c.Name, mend)
	case *uid == 0:
		return fmt.Errorf("container %q has runAsNonRoot, but its image runs as 0, which is root: %s", c.Name, mend)
	case *uid < 0 || *uid > math.MaxInt32:
		return fmt.Errorf("container %q has runAsNonRoot, but its image runs as %d, which is not a user ID (0 to %d): %s", c.Name, *uid, math.MaxInt32, mend)
	}
	return nil
}
