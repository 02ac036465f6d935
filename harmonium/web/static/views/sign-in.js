// Signing in, if the server needs a token: it comes with the address, or is asked for.

import { html, useState } from "../vendor/preact.js";
import { post } from "../api.js";
import { go } from "../router.js";
import { FormError, View } from "../components/bits.js";

/** Use the token of the address (#token=…), if there is one, and remove it from there. */
export async function tokenFromAddress() {
  const token = new URLSearchParams(location.hash.replace(/^#\/?/, "")).get("token");
  if (!token) return false;
  go("search", null, {}, { replace: true });
  await post("/session", { token });
  return true;
}

export function SignIn({ onDone }) {
  const [text, setText] = useState("");
  const [error, setError] = useState(null);
  const token = text.trim();
  const onSubmit = async (event) => {
    event.preventDefault();
    try {
      await post("/session", { token });
      onDone();
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<${View}
    title="Sign in"
    lead="Other computers can reach this server, so it needs a token."
  >
    <form class="card first index-form" onSubmit=${onSubmit}>
      <label for="token">Token</label>
      <div class="row">
        <input
          id="token"
          type="password"
          autocomplete="current-password"
          aria-describedby="token-help"
          value=${text}
          onInput=${(event) => setText(event.target.value)}
        />
        <button class="primary" type="submit" disabled=${!token}>Sign in</button>
      </div>
      <${FormError} error=${error} />
      <p id="token-help" class="soft">
        “harmonium serve” prints it, with an address that signs you in.
      </p>
    </form>
  <//>`;
}
