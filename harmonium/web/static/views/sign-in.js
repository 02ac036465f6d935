// Signing in, if the server needs a token: it comes with the address, or is asked for.

import { html, useState } from "../vendor/preact.js";
import { post } from "../api.js";
import { go } from "../router.js";
import { View } from "../components/bits.js";

/** Use the token of the address (#token=…), if there is one, and remove it from there. */
export async function tokenFromAddress() {
  const token = new URLSearchParams(location.hash.replace(/^#\/?/, "")).get("token");
  if (!token) return false;
  go("search", null, {}, { replace: true });
  await post("/session", { token });
  return true;
}

export function SignIn({ onDone, problem = null }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState(problem);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await post("/session", { token: token.trim() });
      onDone();
    } catch (refusal) { setError(refusal); }
  };
  return html`<${View} title="Sign in" lead="Other computers can reach this server, so it needs a token.">
    <form class="card first index-form" onSubmit=${submit}>
      <label for="token">Token</label>
      <div class="row"><input id="token" type="password" autocomplete="current-password" aria-describedby="token-help" value=${token} onInput=${(event) => setToken(event.target.value)} />
        <button class="primary" type="submit" disabled=${!token.trim()}>Sign in</button></div>
      ${error && html`<p class="bad" role="alert">${error.message}</p>`}
      <p id="token-help" class="soft">“harmonium serve” prints it, with an address that signs you in.</p>
    </form>
  <//>`;
}
