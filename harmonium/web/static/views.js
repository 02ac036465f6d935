// The views by the name in their address, #/NAME. Those with a label are in the navigation.

import { Changes } from "./views/changes.js";
import { Library } from "./views/library.js";
import { Search } from "./views/search.js";
import { Tag } from "./views/tag.js";
import { Tags } from "./views/tags.js";
import { Teach } from "./views/teach.js";
import { Track } from "./views/track.js";
import { Training } from "./views/training.js";
import { Write } from "./views/write.js";

/**
 * `view` shows #/NAME and gets its parameters; `detail` shows #/NAME/ID and gets the id. An empty
 * library is asked for its music instead, unless `isShownEmpty`.
 */
export const VIEWS = {
  search: { label: "Search", view: Search },
  track: { detail: Track },
  teach: { label: "Teach", view: Teach },
  tags: { label: "Tags", view: Tags, detail: Tag },
  write: { label: "Write", view: Write },
  training: { label: "Training", view: Training },
  changes: { label: "Changes", view: Changes, isShownEmpty: true },
  library: { view: Library, isShownEmpty: true },
};
